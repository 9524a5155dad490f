import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.*;
import java.util.concurrent.Executors;

public class Prices {
    static int cache;
    static final ThreadLocal<Socket> SOCKETS = ThreadLocal.withInitial(() -> {
        try {
            Socket socket = new Socket("127.0.0.1", cache);
            socket.setTcpNoDelay(true);
            return socket;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    });

    static int askPrice(int number) throws IOException {
        Socket socket = SOCKETS.get();
        socket.getOutputStream().write(("GET price:" + number + "\r\n").getBytes());
        byte[] answer = new byte[64];
        return socket.getInputStream().read(answer);
    }

    static int loadPrices() throws IOException {
        int total = 0;
        for (int n = 0; n < 300; n++) total += askPrice(n);
        return total;
    }

    public static void main(String[] args) throws Exception {
        cache = Integer.parseInt(args[1]);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(6));
        server.createContext("/", exchange -> {
            byte[] text = String.valueOf(loadPrices()).getBytes();
            exchange.sendResponseHeaders(200, text.length);
            exchange.getResponseBody().write(text);
            exchange.close();
        });
        server.start();
    }
}
