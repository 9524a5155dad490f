import java.io.RandomAccessFile;
import java.nio.channels.FileLock;

public class Spool {
    public static void main(String[] args) throws Exception {
        RandomAccessFile file = new RandomAccessFile(args[0], "rw");
        long pause = Long.parseLong(args[1]);
        while (true) {
            try (FileLock lock = file.getChannel().lock()) {
                Thread.sleep(pause);
            }
            Thread.sleep(5);
        }
    }
}
