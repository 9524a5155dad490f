import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;

public class Orders {
    static final List<byte[]> history = new ArrayList<>();

    static synchronized void remember(String order) {
        byte[] copy = new byte[60_000];
        System.arraycopy(order.getBytes(), 0, copy, 0, order.length());
        history.add(copy);
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.createContext("/", exchange -> {
            remember("order " + history.size());
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.start();
    }
}
