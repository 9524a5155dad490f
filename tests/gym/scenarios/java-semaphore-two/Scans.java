import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Semaphore;
import java.util.concurrent.Executors;

public class Scans {

    static final Semaphore PERMITS = new Semaphore(2);

    static int readBarcode() throws InterruptedException {
        Thread.sleep(50);
        return 31;
    }

    static int scan() throws InterruptedException {
        PERMITS.acquire();
        try {
            return readBarcode();
        } finally {
            PERMITS.release();
        }
    }

    static void answer(HttpExchange exchange) throws IOException {
        try {
            byte[] body = (scan() + "\n").getBytes();
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
        server.createContext("/", Scans::answer);
        server.start();
    }
}
