import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.ReentrantLock;

public class Warehouse {
    static final ReentrantLock shelves = new ReentrantLock();
    static final ReentrantLock orders = new ReentrantLock();

    static void pickOrder() throws InterruptedException {
        orders.lock();
        try {
            Thread.sleep(20);
            shelves.lock();
            shelves.unlock();
        } finally {
            orders.unlock();
        }
    }

    static void refillShelf() throws InterruptedException {
        shelves.lock();
        try {
            Thread.sleep(20);
            orders.lock();
            orders.unlock();
        } finally {
            shelves.unlock();
        }
    }

    public static void main(String[] words) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            try {
                if (exchange.getRequestURI().getPath().hashCode() % 2 == 0) {
                    pickOrder();
                } else {
                    refillShelf();
                }
            } catch (InterruptedException error) {
                throw new RuntimeException(error);
            }
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.start();
    }
}
