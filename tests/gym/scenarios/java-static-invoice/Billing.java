import com.sun.net.httpserver.HttpServer;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.Executors;

public class Billing {
    static int last;

    static class InvoiceNumbers {
        static synchronized String nextInvoice(String down) throws Exception {
            HttpURLConnection ask = (HttpURLConnection) new URL("http://127.0.0.1:" + down + "/").openConnection();
            try (InputStream in = ask.getInputStream()) {
                in.readAllBytes();
            }
            return "I-" + ++last;
        }
    }

    public static void main(String[] words) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(10));
        server.createContext("/", exchange -> {
            byte[] text;
            try {
                text = InvoiceNumbers.nextInvoice(words[1]).getBytes();
            } catch (Exception error) {
                text = new byte[0];
            }
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        server.start();
    }
}
