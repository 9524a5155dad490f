import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.concurrent.Executors;

public class Tariff {

    static String[] words;

    static String fetchTable() throws IOException {
        try (var socket = new Socket("127.0.0.1", Integer.parseInt(words[1]))) {
            socket.getOutputStream().write("TABLE\n".getBytes());
            return "" + socket.getInputStream().read();
        }
    }

    static class Table {
        static final String ROWS;

        static {
            try {
                ROWS = fetchTable();
            } catch (IOException error) {
                throw new ExceptionInInitializerError(error);
            }
        }
    }

    static void answer(HttpExchange exchange) throws IOException {
        try {
            byte[] body = (Table.ROWS + "\n").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        words = args;
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", Tariff::answer);
        server.start();
    }
}
