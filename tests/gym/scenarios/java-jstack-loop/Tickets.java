import com.sun.net.httpserver.*;
import java.io.*;
import java.net.*;
import java.util.*;
import java.util.concurrent.*;

public class Tickets {
    static final Map<Integer, String> TICKETS = new ConcurrentHashMap<>();

    static String findTicket(int number) {
        return TICKETS.computeIfAbsent(number, n -> "ticket " + n);
    }

    static void serveTicket(HttpExchange exchange) throws IOException {
        byte[] body = findTicket(ThreadLocalRandom.current().nextInt(1000)).getBytes();
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 64);
        server.createContext("/", Tickets::serveTicket);
        server.setExecutor(Executors.newFixedThreadPool(200));
        server.start();
    }
}
