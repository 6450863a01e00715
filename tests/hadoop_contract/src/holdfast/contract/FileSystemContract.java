package holdfast.contract;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FileSystemContractBaseTest;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.web.WebHdfsFileSystem;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.test.LambdaTestUtils;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

/**
 * FileSystemContractBaseTest as HDFS runs it over WebHDFS: as a plain user, the root open to all;
 * then what TestWebHdfsFileSystemContract adds, in cases of our own (testWire*: bare HTTP).
 */
public class FileSystemContract extends FileSystemContractBaseTest {
  private UserGroupInformation ugi;
  private String home;

  @BeforeAll
  public static void openRoot() {
    Target.openRoot();
  }

  @BeforeEach
  public void setUp() throws Exception {
    ugi = Target.plainUser();
    fs = Target.as(ugi, Target.configuration());
    home = fs.getWorkingDirectory().toUri().getPath();
  }

  @Override
  protected String getDefaultWorkingDirectory() {
    return home;
  }

  @Override
  protected int getGlobalTimeout() {
    return 60_000;
  }

  @Override
  @Test
  public void testMkdirsFailsForSubdirectoryOfExistingFile() throws Exception {
    Path file = path("/FileSystemContractBaseTest/mkdirs/file");
    createFile(file);
    for (String below : new String[] {"subdir", "deep/sub/dir"}) {
      Path path = new Path(file, below);
      LambdaTestUtils.intercept(IOException.class, () -> fs.mkdirs(path));
      ClassicSuites.assertAbsentOrDenied(fs, path);
    }
  }

  // --- through the client

  @Test
  public void testGetFileBlockLocations() throws Exception {
    Path file = path("located");
    createFile(file);
    long length = fs.getFileStatus(file).getLen();
    BlockLocation[] first = fs.getFileBlockLocations(file, 0, 1);
    assertEquals(1, first.length, "one byte lies in one block");
    assertEquals(0, first[0].getOffset());
    assertTrue(first[0].getLength() > 0);
    assertTrue(first[0].getHosts().length > 0, "a host of the block");
    assertEquals(first[0].getHosts().length, first[0].getNames().length);
    assertFalse(first[0].isCorrupt());
    long next = 0;
    for (BlockLocation block : fs.getFileBlockLocations(file, 0, length)) {
      assertEquals(next, block.getOffset(), "blocks adjoin");
      next += block.getLength();
    }
    assertTrue(next >= length, "blocks reach to the file's end");
  }

  @Test
  public void testOpenNonExistFile() throws Exception {
    LambdaTestUtils.intercept(FileNotFoundException.class, () -> {
      try (FSDataInputStream in = fs.open(path("nothing"))) {
        return in.read();
      }
    });
  }

  @Test
  public void testSeek() throws Exception {
    Path empty = path("seek/empty");
    fs.create(empty).close();
    try (FSDataInputStream in = fs.open(empty)) {
      assertEquals(-1, in.read());
    }
    byte[] content = new byte[1 << 20];
    new Random(7).nextBytes(content);
    Path file = path("seek/file");
    try (FSDataOutputStream out = fs.create(file, false, 4096, (short) 3, 1L << 17)) {
      out.write(content);
    }
    int third = content.length / 3;
    byte[] tail = new byte[content.length - third];
    try (FSDataInputStream in = fs.open(file)) {
      in.seek(third);
      in.readFully(tail);
    }
    assertArrayEquals(Arrays.copyOfRange(content, third, content.length), tail);
    byte[] end = new byte[content.length - 2 * third];
    try (FSDataInputStream in = fs.open(file)) {
      in.readFully(2L * third, end);
    }
    assertArrayEquals(Arrays.copyOfRange(content, 2 * third, content.length), end);
  }

  @Test
  public void testRootDir() throws Exception {
    Path root = new Path("/");
    FileStatus status = fs.getFileStatus(root);
    assertTrue(status.isDirectory());
    assertEquals(0777, status.getPermission().toShort());
    assertFalse(fs.delete(root, true), "the root is not to be deleted");
    LambdaTestUtils.intercept(IOException.class, () -> {
      try (FSDataOutputStream out = fs.create(root)) {
        out.write(1);
      }
    });
    LambdaTestUtils.intercept(IOException.class, () -> {
      try (FSDataInputStream in = fs.open(root)) {
        return in.read();
      }
    });
  }

  @Test
  public void testAppendOften() throws Exception {
    Path file = path("appended");
    byte[] piece = new byte[1000];
    new Random(8).nextBytes(piece);
    try (FSDataOutputStream out = fs.create(file, (short) 1)) {
      out.write(piece);
    }
    int pieces = 20;
    for (int i = 2; i <= pieces; i++) {
      try (FSDataOutputStream out = fs.append(file)) {
        out.write(piece);
      }
      assertEquals((long) i * piece.length, fs.getFileStatus(file).getLen());
    }
    byte[] read = new byte[piece.length];
    try (FSDataInputStream in = fs.open(file)) {
      for (int i = 0; i < pieces; i++) {
        in.readFully((long) i * piece.length, read);
        assertArrayEquals(piece, read, "piece " + i);
      }
    }
  }

  @Test
  public void testSetReplicationOfDirectory() throws Exception {
    Path dir = path("replicated");
    assertTrue(fs.mkdirs(dir));
    assertFalse(fs.setReplication(dir, (short) 1));
  }

  @Test
  public void testAccess() throws Exception {
    Path path = new Path("/pathX");
    FileSystem alpha = Target.as(
        UserGroupInformation.createUserForTesting("alpha", new String[] {"beta"}),
        Target.configuration());
    try {
      alpha.mkdirs(path);
      alpha.setPermission(path, new FsPermission((short) 0444));
      alpha.access(path, FsAction.READ);
      LambdaTestUtils.intercept(AccessControlException.class,
          () -> alpha.access(path, FsAction.WRITE));
      LambdaTestUtils.intercept(FileNotFoundException.class,
          () -> alpha.access(new Path("/bad"), FsAction.READ));
    } finally {
      alpha.delete(path, true);
    }
  }

  // --- bare HTTP

  private HttpURLConnection request(String method, Path path, String query) throws IOException {
    return Target.request(method, path.toUri().getPath(), ugi.getShortUserName(), query);
  }

  private static Map<?, ?> json(InputStream in) throws IOException {
    try (in) {
      return new ObjectMapper().readValue(in, Map.class);
    }
  }

  /** What a client sees of a read: the answer itself, or that to which it was redirected. */
  private HttpURLConnection read(Path path, String query) throws IOException {
    HttpURLConnection connection = request("GET", path, query);
    if (connection.getResponseCode() == 307) {
      connection = Target.request("GET", new URL(connection.getHeaderField("Location")));
    }
    return connection;
  }

  private URL redirectOfCreate(Path path) throws IOException {
    HttpURLConnection connection = request("PUT", path, "op=CREATE");
    assertEquals(307, connection.getResponseCode(), "CREATE without data is redirected");
    String location = connection.getHeaderField("Location");
    connection.disconnect();
    assertNotNull(location, "a redirect has a Location");
    return new URL(location);
  }

  private int put(URL url) throws IOException {
    HttpURLConnection connection = Target.request("PUT", url);
    connection.setDoOutput(true);
    connection.setRequestProperty("Content-Type", "application/octet-stream");
    connection.getOutputStream().close();
    int code = connection.getResponseCode();
    connection.disconnect();
    return code;
  }

  @Test
  public void testWireCaseInsensitive() throws Exception {
    Path dir = path("caseInsensitive");
    assertEquals(200, request("PUT", dir, "op=mkDIrs").getResponseCode());
    assertTrue(fs.getFileStatus(dir).isDirectory());
  }

  @Test
  public void testWireLengthBeyondEnd() throws Exception {
    Path file = path("beyond");
    String content = "neither more nor less";
    try (FSDataOutputStream out = fs.create(file)) {
      out.write(content.getBytes(StandardCharsets.US_ASCII));
    }
    int length = content.length();
    for (int offset : new int[] {0, 1}) {
      HttpURLConnection connection =
          read(file, "op=OPEN&length=" + (length + 1) + "&offset=" + offset);
      assertEquals(200, connection.getResponseCode());
      assertEquals(String.valueOf(length - offset), connection.getHeaderField("Content-Length"));
      try (InputStream in = connection.getInputStream()) {
        assertEquals(content.substring(offset),
            new String(in.readAllBytes(), StandardCharsets.US_ASCII));
      }
    }
  }

  @Test
  public void testWireHomeDirectory() throws Exception {
    HttpURLConnection connection = request("GET", new Path("/"), "op=GETHOMEDIRECTORY");
    assertEquals(200, connection.getResponseCode());
    assertEquals(fs.getHomeDirectory().toUri().getPath(),
        json(connection.getInputStream()).get("Path"));
  }

  @Test
  public void testWireJsonParsesInClient() throws Exception {
    HttpURLConnection connection = request("GET", new Path("/"), "op=GETHOMEDIRECTORY");
    assertNotNull(WebHdfsFileSystem.jsonParse(connection, false).get("Path"));
  }

  @Test
  public void testWireDataDoesNotParseAsJson() throws Exception {
    Path file = path("data");
    try (FSDataOutputStream out = fs.create(file)) {
      out.write(1);
    }
    HttpURLConnection connection = read(file, "op=OPEN");
    assertEquals(200, connection.getResponseCode());
    LambdaTestUtils.intercept(IOException.class,
        () -> WebHdfsFileSystem.jsonParse(connection, false));
  }

  @Test
  public void testWireUnauthorizedDoAs() throws Exception {
    assertEquals(403, request("GET", new Path("/"),
        "op=GETHOMEDIRECTORY&doas=" + ugi.getShortUserName() + "proxy").getResponseCode());
  }

  @Test
  public void testWireSetOwnerByGet() throws Exception {
    Path dir = path("owned");
    assertTrue(fs.mkdirs(dir));
    assertEquals(400, request("GET", dir, "op=SETOWNER").getResponseCode());
  }

  @Test
  public void testWireSetOwnerOfNothing() throws Exception {
    Path dir = path("owned");
    assertTrue(fs.mkdirs(dir));
    assertEquals(400, request("PUT", dir, "op=SETOWNER").getResponseCode());
  }

  @Test
  public void testWireSetReplicationOfDirectory() throws Exception {
    Path dir = path("replicated");
    assertTrue(fs.mkdirs(dir));
    HttpURLConnection connection = request("PUT", dir, "op=SETREPLICATION");
    assertEquals(200, connection.getResponseCode());
    assertEquals(false, json(connection.getInputStream()).get("boolean"));
  }

  @Test
  public void testWireStatusOfNothing() throws Exception {
    HttpURLConnection connection = request("GET", path("nothing"), "op=GETFILESTATUS");
    assertEquals(404, connection.getResponseCode());
    Map<?, ?> exception = (Map<?, ?>) json(connection.getErrorStream()).get("RemoteException");
    assertEquals("FileNotFoundException", exception.get("exception"));
    assertEquals("java.io.FileNotFoundException", exception.get("javaClassName"));
  }

  @Test
  public void testWireSetPermissionToDefault() throws Exception {
    Path dir = path("permitted");
    assertTrue(fs.mkdirs(dir));
    HttpURLConnection connection = request("PUT", dir, "op=SETPERMISSION");
    assertEquals(200, connection.getResponseCode());
    assertEquals(0, connection.getContentLength());
    assertEquals("application/octet-stream", connection.getContentType());
    assertEquals(0755, fs.getFileStatus(dir).getPermission().toShort());
  }

  @Test
  public void testWireCreateWithSpaces() throws Exception {
    Path file = path("a path with spaces");
    assertEquals(201, put(redirectOfCreate(file)));
    assertTrue(fs.getFileStatus(file).isFile());
  }

  /** The redirect's parameters are ours to leave out, save the NameNode's address. */
  @Test
  public void testWireCreateMissingParameters() throws Exception {
    for (String name : new String[] {"createflag", "createparent", "overwrite"}) {
      Path file = path("missing_" + name);
      URL redirect = redirectOfCreate(file);
      URL without = new URL(redirect.toString().replaceAll("&" + name + "=[^&]*", ""));
      assertEquals(201, put(without), without.toString());
    }
  }

  @Test
  public void testWireCreateMissingNamenode() throws Exception {
    String redirect = redirectOfCreate(path("astray")).toString();
    assumeTrue(redirect.contains("namenoderpcaddress="),
        "the redirect names no NameNode, so it cannot be left out");
    assertEquals(400, put(new URL(redirect.replaceAll("[&]namenoderpcaddress=[^&]*", ""))));
  }
}
