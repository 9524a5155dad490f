import com.sun.net.httpserver.HttpServer;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;

public class Gateway {
    static class Channels {
        private final BlockingQueue<Socket> free = new ArrayBlockingQueue<>(2);

        Channels(int port) throws Exception {
            for (int i = 0; i < 2; i++) {
                free.add(new Socket("127.0.0.1", port));
            }
        }

        Socket reserve() throws InterruptedException {
            return free.take();
        }

        void giveBack(Socket socket) {
            free.add(socket);
        }
    }

    static int scoreCustomer(Channels channels) throws Exception {
        Socket socket = channels.reserve();
        try {
            socket.getOutputStream().write("GET /score HTTP/1.1\r\nHost: x\r\n\r\n".getBytes());
            InputStream in = socket.getInputStream();
            return in.read(new byte[512]);
        } finally {
            channels.giveBack(socket);
        }
    }

    public static void main(String[] words) throws Exception {
        Channels channels = new Channels(Integer.parseInt(words[1]));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(12));
        server.createContext("/", exchange -> {
            byte[] body;
            try {
                body = String.valueOf(scoreCustomer(channels)).getBytes();
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
