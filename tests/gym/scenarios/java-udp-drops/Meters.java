import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.Map;

public class Meters {
    private final Map<String, Long> values = new HashMap<>();

    void store(String text) throws InterruptedException {
        String[] parts = text.split(";");
        values.put(parts[0], Long.parseLong(parts[1].substring(6)));
        Thread.sleep(5); // the archive
    }

    public static void main(String[] words) throws Exception {
        Meters meters = new Meters();
        DatagramSocket socket = new DatagramSocket(Integer.parseInt(words[0]), InetAddress.getByName("127.0.0.1"));
        socket.setReceiveBufferSize(16384);
        DatagramPacket packet = new DatagramPacket(new byte[2048], 2048);
        while (true) {
            socket.receive(packet);
            meters.store(new String(packet.getData(), 0, packet.getLength()));
        }
    }
}
