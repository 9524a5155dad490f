import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.regex.Pattern;

public class Router {
    static final List<Pattern> routes = List.of(Pattern.compile("/.*.*.*.*=;"), Pattern.compile("/orders/(\\d+)"));

    static int match(String path) {
        for (int i = 0; i < routes.size(); i++)
            if (routes.get(i).matcher(path).matches()) return i;
        return -1;
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            byte[] answer = ("" + match(exchange.getRequestURI().getPath())).getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
    }
}
