import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Executors;

public class Audit {

    static final LinkedBlockingQueue<String> EVENTS = new LinkedBlockingQueue<>(16);

    static void ship(String event) throws InterruptedException {
        Thread.sleep(30);
    }

    static int note() throws InterruptedException {
        EVENTS.put("request");
        return 1;
    }

    static void shipAll() {
        try {
            while (true) ship(EVENTS.take());
        } catch (InterruptedException error) {
            return;
        }
    }

    static void answer(HttpExchange exchange) throws IOException {
        try {
            byte[] body = (note() + "\n").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        new Thread(Audit::shipAll, "shipper").start();
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", Audit::answer);
        server.start();
    }
}
