import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;

public class Inbox {

    static long newest;

    static long findNew(String folder) throws IOException {
        long latest = 0;
        for (int number = 0; number < 6000; number++) {
            Path path = Path.of(folder, "mail-" + number);
            latest = Math.max(latest, Files.getLastModifiedTime(path).toMillis());
        }
        return latest;
    }

    static void watch(String folder) {
        try {
            while (true) {
                newest = findNew(folder);
                Thread.sleep(250);
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    static void answer(HttpExchange exchange) throws IOException {
        try {
            byte[] body = (newest + "\n").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        new Thread(() -> watch(args[1])).start();
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", Inbox::answer);
        server.start();
    }
}
