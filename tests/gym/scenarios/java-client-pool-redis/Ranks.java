import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;

public class Ranks {
    static class Connection {
        final Socket socket;
        final BufferedReader reader;
        Connection(int port) throws IOException {
            socket = new Socket("127.0.0.1", port);
            reader = new BufferedReader(new InputStreamReader(socket.getInputStream()));
        }
        String ask(String command) throws IOException {
            socket.getOutputStream().write((command + "\r\n").getBytes());
            return reader.readLine();
        }
    }
    static final class ConnectionStore {
        private final LinkedBlockingDeque<Connection> free = new LinkedBlockingDeque<>();
        Connection lend() throws InterruptedException { return free.takeFirst(); }
        void giveBack(Connection one) { free.addFirst(one); }
    }
    static final ConnectionStore STORE = new ConnectionStore();

    static String readRanks() throws Exception {
        Connection one = STORE.lend();
        try {
            String answer = one.ask("PING");
            formatRanks();
            return answer;
        } finally {
            STORE.giveBack(one);
        }
    }
    static void formatRanks() throws InterruptedException { Thread.sleep(120); }

    public static void main(String[] args) throws Exception {
        for (int n = 0; n < 2; n++) STORE.giveBack(new Connection(Integer.parseInt(args[1])));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(20));
        server.createContext("/", exchange -> {
            byte[] text;
            try { text = readRanks().getBytes(); } catch (Exception error) { text = "no".getBytes(); }
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        server.start();
    }
}
