import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

public class Mailer {
    static void deliver() {
        try {
            Thread.sleep(20_000);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    static boolean sendLater() {
        try {
            Thread thread = new Thread(Mailer::deliver);
            thread.setDaemon(true);
            thread.start();
            return true;
        } catch (OutOfMemoryError full) {
            return false;
        }
    }

    static void handle(HttpExchange exchange) {
        try {
            byte[] body = (sendLater() ? "sent" : "later").getBytes();
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
        server.createContext("/", Mailer::handle);
        server.start();
    }
}
