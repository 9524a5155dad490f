import java.net.Socket;

public class Feed {
    static void connectBroker(int port) throws Exception {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.getInputStream().read();
        } catch (java.net.ConnectException e) {
            Thread.sleep(100);
        }
    }

    public static void main(String[] args) throws Exception {
        while (true) connectBroker(Integer.parseInt(args[0]));
    }
}
