import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;

public class Portal {
    static class Session {
        final String user;
        final long[] clicks = new long[4000];

        Session(String user) {
            this.user = user;
        }
    }

    static final Map<String, Session> sessions = new ConcurrentHashMap<>();

    static Session openSession(String user) {
        return sessions.computeIfAbsent(user + UUID.randomUUID(), key -> new Session(user));
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/login", exchange -> {
            Session session = openSession(exchange.getRequestURI().getQuery());
            byte[] answer = ("hello " + session.user).getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
    }
}
