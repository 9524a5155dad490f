import java.io.FileInputStream;
import java.util.ArrayList;
import java.util.List;

public class Importer {
    static final List<FileInputStream> inputs = new ArrayList<>();

    static int readHead(String path) throws Exception {
        FileInputStream in = new FileInputStream(path);
        inputs.add(in);
        return in.read();
    }

    public static void main(String[] a) throws Exception {
        while (true) {
            readHead("/etc/passwd");
            Thread.sleep(25);
        }
    }
}
