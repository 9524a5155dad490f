import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

public class Import {
    static class BadRow extends RuntimeException {
        BadRow(String row) {
            super("not a number: " + row);
        }
    }

    static int parseRow(String row) {
        if (!Character.isDigit(row.charAt(0))) throw new BadRow(row);
        return Integer.parseInt(row);
    }

    static int countGood(List<String> rows) {
        return rows.stream().mapToInt(row -> {
            try {
                return parseRow(row);
            } catch (BadRow bad) {
                return bad.getStackTrace().length > 1000 ? 1 : 0;
            }
        }).sum();
    }

    public static void main(String[] args) throws Exception {
        var rows = IntStream.range(0, 400).mapToObj(n -> n % 2 == 0 ? "x" + n : "" + n).collect(Collectors.toList());
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(6));
        server.createContext("/", exchange -> {
            byte[] answer = ("" + countGood(rows)).getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
    }
}
