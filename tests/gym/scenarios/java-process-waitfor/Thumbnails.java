import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

public class Thumbnails {
    static int convert() throws Exception {
        Process process = new ProcessBuilder("seq", "1", "30000").start();
        return process.waitFor();
    }

    static void handle(HttpExchange exchange) {
        try {
            byte[] body = Integer.toString(convert()).getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            error.printStackTrace();
        }
        exchange.close();
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", Thumbnails::handle);
        server.start();
    }
}
