import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.locks.StampedLock;
import java.util.concurrent.Executors;

public class Prices {

    static final StampedLock LOCK = new StampedLock();
    static long price = 7;

    static void reprice() {
        long stamp = LOCK.writeLock();
        try {
            Thread.sleep(90);
            price = price * 31 % 65521;
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        } finally {
            LOCK.unlockWrite(stamp);
        }
    }

    static long quote() {
        long stamp = LOCK.readLock();
        try {
            return price;
        } finally {
            LOCK.unlockRead(stamp);
        }
    }

    static void answer(HttpExchange exchange) throws IOException {
        try {
            byte[] body = (quote() + "\n").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        var writer = new Thread(() -> {
            while (true) {
                reprice();
                try {
                    Thread.sleep(2);
                } catch (InterruptedException error) {
                    return;
                }
            }
        });
        writer.start();
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", Prices::answer);
        server.start();
    }
}
