import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.Executors;

public class Desk {

    static final LinkedBlockingQueue<String> EVENTS = new LinkedBlockingQueue<>();
    static final ArrayDeque<Integer> FREE = new ArrayDeque<>();
    static final ScheduledExecutorService TIMER = Executors.newScheduledThreadPool(1);
    static int told;

    static int borrow() throws InterruptedException {
        synchronized (FREE) {
            while (FREE.isEmpty()) FREE.wait();
            return FREE.poll();
        }
    }

    static void giveBack(int lease) {
        synchronized (FREE) {
            FREE.add(lease);
            FREE.notify();
        }
    }

    static int serve() throws InterruptedException {
        int lease = borrow();
        try {
            EVENTS.put("served");
            return "desk".repeat(200).hashCode() + lease;
        } finally {
            giveBack(lease);
        }
    }

    static void tell() {
        try {
            while (true) told += EVENTS.take().length();
        } catch (InterruptedException error) {
            return;
        }
    }

    static void sweep() {
        EVENTS.add("sweep");
    }

    static void answer(HttpExchange exchange) throws IOException {
        try {
            byte[] body = (serve() + "\n").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        for (int lease = 0; lease < 6; lease++) FREE.add(lease);
        new Thread(Desk::tell, "teller").start();
        TIMER.scheduleAtFixedRate(Desk::sweep, 1, 1, TimeUnit.SECONDS);
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", Desk::answer);
        server.start();
    }
}
