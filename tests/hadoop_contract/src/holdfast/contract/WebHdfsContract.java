package holdfast.contract;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.contract.AbstractBondedFSContract;

/** What a server behind webhdfs:// is held to: all that HDFS claims of itself. */
public class WebHdfsContract extends AbstractBondedFSContract {

  public WebHdfsContract(Configuration conf) {
    super(conf);
    addConfResource("contract/webhdfs.xml");
    Target.configure(getConf());
  }

  @Override
  public String getScheme() {
    return "webhdfs";
  }
}
