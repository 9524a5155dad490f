import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.HttpURLConnection;
import java.net.URL;
import java.util.concurrent.Executors;

public class Rates {

    static String url;

    static int fetchRate(int number) throws IOException {
        var connection = (HttpURLConnection) new URL(url + number).openConnection();
        connection.setUseCaches(false);
        try (var answer = connection.getInputStream()) {
            return answer.readAllBytes().length;
        } finally {
            connection.disconnect();
        }
    }

    static int convert() throws IOException {
        int sum = 0;
        for (int number = 0; number < 20; number++) sum += fetchRate(number);
        return sum;
    }

    static void answer(HttpExchange exchange) throws IOException {
        try {
            byte[] body = (convert() + "\n").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        url = "http://127.0.0.1:" + args[1] + "/";
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", Rates::answer);
        server.start();
    }
}
