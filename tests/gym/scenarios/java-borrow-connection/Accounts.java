import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.function.Function;

public class Accounts {
    record Connection(int port) {
        String query(String account) {
            try (var socket = new Socket("127.0.0.1", port)) {
                socket.getOutputStream().write(("GET /" + account + " HTTP/1.0\r\n\r\n").getBytes());
                return new String(socket.getInputStream().readAllBytes());
            } catch (IOException error) {
                return error.toString();
            }
        }
    }

    static class ConnectionPool {
        private final BlockingQueue<Connection> idle = new ArrayBlockingQueue<>(2);

        ConnectionPool(int port) {
            for (int i = 0; i < 2; i++) idle.add(new Connection(port));
        }

        <T> T withConnection(Function<Connection, T> work) throws InterruptedException {
            Connection connection = idle.take();
            try {
                return work.apply(connection);
            } finally {
                idle.put(connection);
            }
        }
    }

    static ConnectionPool pool;

    static void balance(HttpExchange exchange) throws IOException {
        try {
            byte[] answer = pool.withConnection(connection -> connection.query("balance")).getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
        } catch (InterruptedException error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        pool = new ConnectionPool(Integer.parseInt(args[1]));
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(12));
        server.createContext("/", Accounts::balance);
        server.start();
    }
}
