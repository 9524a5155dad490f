import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

public class Reports {
    static final ExecutorService pool = Executors.newFixedThreadPool(3);

    static String renderSection() throws Exception {
        Thread.sleep(20);
        return "section";
    }

    static String renderReport() throws Exception {
        Thread.sleep(10);
        return pool.submit(Reports::renderSection).get();
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            try {
                byte[] body = pool.submit(Reports::renderReport).get().getBytes();
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
            } catch (Exception e) {
                exchange.sendResponseHeaders(503, -1);
            }
            exchange.close();
        });
        server.start();
    }
}
