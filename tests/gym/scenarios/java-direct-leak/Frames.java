import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;

public class Frames {
    static final Deque<ByteBuffer> frames = new ArrayDeque<>();

    static void keepFrame(int number) {
        ByteBuffer frame = ByteBuffer.allocateDirect(48_000);
        while (frame.remaining() >= 8) frame.putLong(number);
        frames.add(frame);
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.createContext("/", exchange -> {
            keepFrame(frames.size());
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.start();
    }
}
