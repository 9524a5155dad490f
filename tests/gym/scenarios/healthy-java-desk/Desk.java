import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Quotes of instruments, kept for a while. */
class QuoteCache {
    private final Map<String, Quote> quotes = new LinkedHashMap<>(64, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Quote> eldest) {
            return size() > 2000;
        }
    };
    private final PriceFeed feed;

    record Quote(String symbol, byte[] price) {}

    QuoteCache(PriceFeed feed) {
        this.feed = feed;
    }

    synchronized Quote find(String symbol) throws IOException {
        Quote quote = quotes.get(symbol);
        if (quote == null) {
            quote = new Quote(symbol, feed.fetchPrice(symbol));
            quotes.put(symbol, quote);
        }
        return quote;
    }
}

class PriceFeed {
    private final String address;

    PriceFeed(String address) {
        this.address = address;
    }

    byte[] fetchPrice(String symbol) throws IOException {
        try (var in = new URL("http://" + address + "/price/" + symbol).openStream()) {
            return in.readAllBytes();
        }
    }
}

public class Desk {
    private final QuoteCache cache;

    Desk(QuoteCache cache) {
        this.cache = cache;
    }

    void handle(HttpExchange exchange) throws IOException {
        String symbol = "S" + Math.abs(exchange.getRequestURI().getPath().hashCode() % 60);
        byte[] body = cache.find(symbol).price();
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] args) throws Exception {
        ExecutorService workers = Executors.newFixedThreadPool(12);
        Desk desk = new Desk(new QuoteCache(new PriceFeed("127.0.0.1:" + args[1])));
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 100);
        server.setExecutor(workers);
        server.createContext("/", desk::handle);
        server.start();
    }
}
