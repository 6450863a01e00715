"""Store objects in Amazon S3 and compatible servers.

- `options`, `provider`: how to reach S3, and the provider of ``s3://`` URLs; neither imports boto3
- `store`: `S3Store`
- `client`: one botocore client per process, and which requests are retried
- `uploads`, `direct`, `signing`: send the three requests that every file needs, without botocore's overhead
- `listings`: parses pages of listings
- `errors`: what an error response, or a lost one, means for the caller
- `tls`: diagnoses TLS mistakes

Import names from these modules: importing this package alone stays light.
"""
