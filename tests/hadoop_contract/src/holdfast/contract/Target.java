package holdfast.contract;

import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.UserGroupInformation;

/** The server under test: its address, and how the suites reach it. */
final class Target {
  /** System property with the file system's URI, webhdfs://host:port. */
  static final String URI_PROPERTY = "holdfast.contract.fs";
  static final String URI_KEY = "fs.contract.test.fs.webhdfs";

  private Target() {
  }

  static Configuration configuration() {
    return configure(new Configuration());
  }

  static Configuration configure(Configuration conf) {
    String given = System.getProperty(URI_PROPERTY, "");
    if (!given.isEmpty()) {
      conf.set(URI_KEY, given);
    }
    // A hung server shall cost seconds, not the client's minute.
    String wait = System.getProperty("holdfast.contract.socket", "20s");
    conf.set("dfs.webhdfs.socket.connect-timeout", wait);
    conf.set("dfs.webhdfs.socket.read-timeout", wait);
    return conf;
  }

  static URI uri() {
    return URI.create(configuration().get(URI_KEY, "")).normalize();
  }

  static FileContext context(Configuration conf) throws IOException {
    return FileContext.getFileContext(uri(), conf);
  }

  /** The user that runs the suites; HDFS's suites take it for the superuser. */
  static UserGroupInformation superuser() throws IOException {
    return UserGroupInformation.getCurrentUser();
  }

  /** Another user, without rights of its own, as HDFS's suites over WebHDFS have one. */
  static UserGroupInformation plainUser() throws IOException {
    return UserGroupInformation.createUserForTesting(
        superuser().getShortUserName() + "x", new String[] {"user"});
  }

  static FileSystem as(UserGroupInformation ugi, Configuration conf)
      throws IOException, InterruptedException {
    return ugi.doAs((PrivilegedExceptionAction<FileSystem>) () -> FileSystem.get(uri(), conf));
  }

  /** Let every user write under the root, as HDFS's suites over WebHDFS start by doing. */
  static void openRoot() {
    try (FileSystem fs = FileSystem.newInstance(uri(), configuration())) {
      fs.setPermission(new Path("/"), new FsPermission((short) 0777));
    } catch (IOException e) {
      System.err.println("root left as it is: " + e);
    }
  }

  /** A request that goes round the client: its redirects are not followed. */
  static HttpURLConnection request(String method, String path, String user, String query)
      throws IOException {
    String encoded = URLEncoder.encode(path, StandardCharsets.UTF_8)
        .replace("+", "%20").replace("%2F", "/");
    return request(method, new URL("http://" + uri().getAuthority() + "/webhdfs/v1" + encoded
        + "?" + query + "&user.name=" + user));
  }

  static HttpURLConnection request(String method, URL url) throws IOException {
    HttpURLConnection connection = (HttpURLConnection) url.openConnection();
    connection.setRequestMethod(method);
    connection.setInstanceFollowRedirects(false);
    connection.setConnectTimeout(20_000);
    connection.setReadTimeout(20_000);
    return connection;
  }
}
