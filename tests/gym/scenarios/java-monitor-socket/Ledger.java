import java.io.*;
import java.net.Socket;

public class Ledger {
    final int port;

    Ledger(int port) { this.port = port; }

    synchronized String post(int number) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.getOutputStream().write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".getBytes());
            return new BufferedReader(new InputStreamReader(socket.getInputStream())).readLine();
        }
    }

    public static void main(String[] args) {
        Ledger ledger = new Ledger(Integer.parseInt(args[0]));
        for (int i = 0; i < 6; i++) {
            final int number = i;
            new Thread(() -> {
                while (true) try { ledger.post(number); } catch (IOException e) { }
            }, "poster-" + i).start();
        }
    }
}
