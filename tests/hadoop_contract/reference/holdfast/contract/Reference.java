package holdfast.contract;

import java.io.File;

import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** Stock HDFS in one process, to run the suites against. Arguments: directory, HTTP port. */
public final class Reference {
  private Reference() {
  }

  public static void main(String[] args) throws Exception {
    HdfsConfiguration conf = new HdfsConfiguration();
    conf.setInt("dfs.blocksize", 1024); // as HDFS's own contract suites set it
    conf.setInt("dfs.namenode.fs-limits.min-block-size", 0);
    // three DataNodes, for the client asks for three replicas and appends do not do with fewer
    MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf, new File(args[0]))
        .nameNodeHttpPort(Integer.parseInt(args[1])).numDataNodes(3).build();
    cluster.waitActive();
    cluster.getFileSystem().setPermission(new Path("/"), new FsPermission((short) 0755));
    System.out.println("ready");
    Thread.currentThread().join();
  }
}
