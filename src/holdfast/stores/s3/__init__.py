"""Store objects in Amazon S3 and compatible servers: see `store`. `options` and `provider` import no boto3."""
