import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;

public class Tracker {
    static final class VisitLog {
        private final List<long[]> visits = new CopyOnWriteArrayList<>();

        int recordVisits(long seed) {
            for (int i = 0; i < 300; i++) {
                visits.add(new long[] {seed, i});
            }
            while (visits.size() > 12000) {
                visits.remove(0);
            }
            return visits.size();
        }
    }

    public static void main(String[] words) throws Exception {
        VisitLog log = new VisitLog();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 64);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            byte[] body = String.valueOf(log.recordVisits(System.nanoTime())).getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
