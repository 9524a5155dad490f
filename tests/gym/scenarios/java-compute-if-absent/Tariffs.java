import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;

public class Tariffs {
    static final ConcurrentHashMap<String, Long> cache = new ConcurrentHashMap<>();

    static long loadTariff(String key) {
        try {
            Thread.sleep(60);
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
        return key.hashCode();
    }

    static long tariff(String key) {
        long value = cache.computeIfAbsent(key, Tariffs::loadTariff);
        cache.remove(key);
        return value;
    }

    public static void main(String[] a) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(a[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.createContext("/", exchange -> {
            byte[] body = ("" + tariff("standard")).getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
