import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

record Article(String name, long[] stock) {}

class ArticleCache {
    private final ConcurrentHashMap<Long, Article> articles = new ConcurrentHashMap<>();

    Article load(long id) {
        return articles.compute(id, (key, old) -> new Article("article " + key, new long[700]));
    }
}

public class Catalog {
    static final ArticleCache cache = new ArticleCache();
    static final AtomicLong next = new AtomicLong();

    static long listArticles() {
        long sum = 0;
        for (int i = 0; i < 400; i++) {
            sum += cache.load(next.incrementAndGet() % 12500).stock().length;
        }
        return sum;
    }

    static void handle(HttpExchange exchange) throws IOException {
        byte[] body = Long.toString(listArticles()).getBytes();
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 40; i++) {
            listArticles();
        }
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", Catalog::handle);
        server.start();
    }
}
