import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

public class Journal {
    public static void main(String[] words) throws Exception {
        try (FileChannel channel = FileChannel.open(Path.of(words[0]), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            while (true) {
                channel.write(ByteBuffer.wrap(new byte[200]), 0);
                channel.force(true);
            }
        }
    }
}
