import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.Executors;

public class Stubs {

    static MappedByteBuffer stubs;
    static int number;

    static synchronized int keepStub() {
        number++;
        stubs.putInt(number * 4099 % 4000000, number);
        stubs.force();
        return number;
    }

    static void answer(HttpExchange exchange) throws IOException {
        try {
            byte[] body = (keepStub() + "\n").getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
        } catch (Exception error) {
            throw new IOException(error);
        } finally {
            exchange.close();
        }
    }

    public static void main(String[] args) throws Exception {
        try (var file = FileChannel.open(Path.of(args[1]), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            stubs = file.map(FileChannel.MapMode.READ_WRITE, 0, 4 << 20);
        }
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", Stubs::answer);
        server.start();
    }
}
