import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;

class Tokenizer {
    List<String> split(String text) {
        List<String> tokens = new ArrayList<>();
        for (int from = 0; from < text.length(); from += 3) {
            tokens.add(text.substring(from, Math.min(text.length(), from + 12)));
        }
        return tokens;
    }
}

public class Indexer {
    static final String TEXT = "the quick brown fox jumps over the lazy dog ".repeat(1500);
    static final Tokenizer tokenizer = new Tokenizer();

    static int indexDocument() {
        int size = 0;
        for (int i = 0; i < 12; i++) {
            size += tokenizer.split(TEXT).size();
        }
        return size;
    }

    static void handle(HttpExchange exchange) throws IOException {
        byte[] body = Integer.toString(indexDocument()).getBytes();
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", Indexer::handle);
        server.start();
    }
}
