import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;

public class Grid {
    static final class Cell {
        final int x, y;

        Cell(int x, int y) {
            this.x = x;
            this.y = y;
        }

        @Override public int hashCode() {
            return x ^ y;
        }

        @Override public boolean equals(Object other) {
            return other instanceof Cell cell && cell.x == x && cell.y == y;
        }
    }

    static int countNeighbours(int size) {
        Map<Cell, Integer> cells = new HashMap<>();
        for (int n = 0; n < size; n++) cells.put(new Cell(n, n), n);
        int found = 0;
        for (int n = 0; n < size; n++) found += cells.containsKey(new Cell(n + 1, n)) ? 1 : 0;
        return found;
    }

    public static void main(String[] args) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 50);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            byte[] answer = ("" + countNeighbours(1500)).getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
    }
}
