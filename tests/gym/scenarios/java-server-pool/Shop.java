import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.Executors;

public class Shop {
    static byte[] askPrice(String port) throws Exception {
        try (var in = new URL("http://127.0.0.1:" + port + "/price").openStream()) {
            return in.readAllBytes();
        }
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(2));
        server.createContext("/", exchange -> {
            try {
                byte[] price = askPrice(args[1]);
                exchange.sendResponseHeaders(200, price.length);
                exchange.getResponseBody().write(price);
            } catch (Exception e) {
                exchange.sendResponseHeaders(503, -1);
            }
            exchange.close();
        });
        server.start();
    }
}
