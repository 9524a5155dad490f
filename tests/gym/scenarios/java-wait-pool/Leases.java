import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.concurrent.Executors;

public class Leases {

    static class LeasePool {
        private final ArrayDeque<Integer> free = new ArrayDeque<>();

        LeasePool(int size) {
            for (int i = 0; i < size; i++) free.add(i);
        }

        synchronized int borrow() throws InterruptedException {
            while (free.isEmpty()) wait();
            return free.poll();
        }

        synchronized void giveBack(int lease) {
            free.add(lease);
            notify();
        }
    }

    static LeasePool pool = new LeasePool(2);

    static int signDocument(int lease) throws InterruptedException {
        Thread.sleep(60);
        return lease * 31;
    }

    static int withLease() throws InterruptedException {
        int lease = pool.borrow();
        try {
            return signDocument(lease);
        } finally {
            pool.giveBack(lease);
        }
    }

    static void answer(HttpExchange exchange) throws IOException {
        try {
            byte[] body = (withLease() + "\n").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", Leases::answer);
        server.start();
    }
}
