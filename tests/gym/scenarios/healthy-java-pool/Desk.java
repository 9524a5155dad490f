import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.*;

public class Desk {
    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 128);
        server.setExecutor(Executors.newFixedThreadPool(8));
        ScheduledExecutorService clock = Executors.newScheduledThreadPool(2);
        clock.scheduleAtFixedRate(() -> System.getProperty("x"), 0, 200, TimeUnit.MILLISECONDS);
        server.createContext("/", exchange -> {
            byte[] text = "ok".getBytes();
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        server.start();
    }
}
