import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

public class Sessions {
    static final Map<Long, byte[]> open = new ConcurrentHashMap<>();

    static void begin(long number) {
        open.put(number, new byte[30_000]);
        byte[] page = new byte[60_000];
        page[0] = 1;
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.createContext("/", exchange -> {
            begin(open.size());
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.start();
    }
}
