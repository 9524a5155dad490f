import java.util.ArrayList;
import java.util.List;

class Row {
    final byte[] cells = new byte[64 * 1024];
}

public class Importer {
    static final List<Row> rows = new ArrayList<>();

    static void importRow(int number) {
        Row row = new Row();
        row.cells[number % row.cells.length] = 1;
        rows.add(row);
    }

    public static void main(String[] args) throws Exception {
        for (int number = 0;; number++) {
            importRow(number);
            if (number % 8 == 0) {
                Thread.sleep(5);
            }
        }
    }
}
