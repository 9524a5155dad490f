import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;

public class Users {
    static final class ConnectionPool {
        private final Semaphore free = new Semaphore(5);
        void borrow() throws InterruptedException { free.acquire(); }
        void giveBack() { free.release(); }
    }
    static final ConnectionPool POOL = new ConnectionPool();
    static final AtomicInteger COUNT = new AtomicInteger();

    static String loadUser(int number) throws Exception {
        POOL.borrow();
        if (number % 10 == 7) throw new IllegalStateException("no such user");
        Thread.sleep(5);
        POOL.giveBack();
        return "user " + number;
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(12));
        server.createContext("/", exchange -> {
            byte[] text;
            try { text = loadUser(COUNT.incrementAndGet()).getBytes(); } catch (Exception error) { text = "no".getBytes(); }
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        server.start();
    }
}
