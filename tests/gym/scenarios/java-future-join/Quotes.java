import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

public class Quotes {

    static final ExecutorService PARTNERS = Executors.newFixedThreadPool(2);
    static int partner;

    static int askPartner() {
        try (var socket = new Socket("127.0.0.1", partner)) {
            socket.getOutputStream().write("GET / HTTP/1.0\r\nConnection: close\r\n\r\n".getBytes());
            return socket.getInputStream().readAllBytes().length;
        } catch (IOException error) {
            return 0;
        }
    }

    static int best() {
        var first = CompletableFuture.supplyAsync(Quotes::askPartner, PARTNERS);
        var second = CompletableFuture.supplyAsync(Quotes::askPartner, PARTNERS);
        return first.thenCombine(second, Math::max).join();
    }

    static void answer(HttpExchange exchange) throws IOException {
        try {
            byte[] body = (best() + "\n").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        partner = Integer.parseInt(args[1]);
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", Quotes::answer);
        server.start();
    }
}
