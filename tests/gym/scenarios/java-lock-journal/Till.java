import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.ReentrantLock;

public class Till {
    private final ReentrantLock lock = new ReentrantLock();
    private final FileChannel journal;

    Till(String path) throws IOException {
        journal = FileChannel.open(Path.of(path), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    void record(String sale) throws IOException {
        lock.lock();
        try {
            journal.write(ByteBuffer.wrap(sale.getBytes()));
            pause(15);
        } finally {
            lock.unlock();
        }
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] args) throws Exception {
        var till = new Till(args[1]);
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            till.record("bread\n");
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.start();
    }
}
