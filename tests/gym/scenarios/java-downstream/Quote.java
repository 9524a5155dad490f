import java.io.*;
import java.net.Socket;

public class Quote {
    static String ask(BufferedReader in, OutputStream out) throws IOException {
        out.write("quote\n".getBytes());
        return in.readLine();
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        for (int i = 0; i < 3; i++) {
            new Thread(() -> {
                try (Socket socket = new Socket("127.0.0.1", port)) {
                    BufferedReader in =
                        new BufferedReader(new InputStreamReader(socket.getInputStream()));
                    while (true) ask(in, socket.getOutputStream());
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            }, "quoter-" + i).start();
        }
    }
}
