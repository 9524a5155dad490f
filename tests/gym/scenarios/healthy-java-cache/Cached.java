import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Executors;

public class Cached {
    static final Map<Integer, byte[]> cache = new LinkedHashMap<>() {
        protected boolean removeEldestEntry(Map.Entry<Integer, byte[]> eldest) {
            return size() > 300;
        }
    };

    static synchronized byte[] page(int number) {
        return cache.computeIfAbsent(number % 400, n -> new byte[20_000]);
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(4));
        int[] number = {0};
        server.createContext("/", exchange -> {
            byte[] body = page(number[0]++);
            body.clone();
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.start();
    }
}
