import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;

class LedgerConnection {
    private final Socket socket;
    private final BufferedReader in;

    LedgerConnection(int port) throws IOException {
        socket = new Socket("127.0.0.1", port);
        in = new BufferedReader(new InputStreamReader(socket.getInputStream()));
    }

    String query(String text) throws IOException {
        socket.getOutputStream().write((text + "\n").getBytes(StandardCharsets.UTF_8));
        return in.readLine();
    }
}

class LedgerConnections {
    private final BlockingQueue<LedgerConnection> free = new LinkedBlockingQueue<>();

    LedgerConnections(int port, int size) throws IOException {
        for (int i = 0; i < size; i++) {
            free.add(new LedgerConnection(port));
        }
    }

    String query(String text) throws IOException, InterruptedException {
        LedgerConnection connection = free.take();
        try {
            return connection.query(text);
        } finally {
            free.add(connection);
        }
    }
}

public class Ledger {
    private final LedgerConnections connections;

    Ledger(LedgerConnections connections) {
        this.connections = connections;
    }

    void showAccount(HttpExchange exchange) throws IOException {
        try {
            byte[] body = connections.query("GET " + exchange.getRequestURI()).getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        Ledger ledger = new Ledger(new LedgerConnections(Integer.parseInt(args[1]), 2));
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 100);
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.createContext("/", ledger::showAccount);
        server.start();
    }
}
