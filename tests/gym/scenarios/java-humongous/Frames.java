import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

public class Frames {

    static int drawFrame(int number) {
        byte[] frame = new byte[3 << 20];
        frame[number] = 7;
        return frame[number] + frame.length;
    }

    static int drawAll() {
        int sum = 0;
        for (int number = 0; number < 12; number++) sum += drawFrame(number);
        return sum;
    }

    static void answer(HttpExchange exchange) throws IOException {
        try {
            byte[] body = (drawAll() + "\n").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", Frames::answer);
        server.start();
    }
}
