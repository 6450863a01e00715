package holdfast.contract;

import java.io.PrintWriter;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.ObjectMapper;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.reporting.ReportEntry;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs one suite and writes a JSON line for each event, flushed at once, so that a run which has
 * to be killed tells what it had done: {"event": planned|started|done, "case", "outcome",
 * "message", "seconds"}. Arguments: the suite, the file to write.
 */
public final class Runner implements TestExecutionListener {
  private final ObjectMapper mapper = new ObjectMapper();
  private final PrintWriter out;
  private final Map<String, Long> begun = new ConcurrentHashMap<>();
  private TestPlan plan;

  private Runner(PrintWriter out) {
    this.out = out;
  }

  public static void main(String[] args) throws Exception {
    try (PrintWriter out = new PrintWriter(args[1], "UTF-8")) {
      LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
          .selectors(DiscoverySelectors.selectClass(classOf(args[0])))
          .configurationParameter("junit.jupiter.execution.timeout.default",
              System.getProperty("holdfast.contract.case", "60 s"))
          .build();
      LauncherFactory.create().execute(request, new Runner(out));
    }
    System.exit(0); // threads that a suite left behind do not hold it up
  }

  private static Class<?> classOf(String suite) throws ClassNotFoundException {
    for (Class<?> group : new Class<?>[] {ContractSuites.class, ClassicSuites.class}) {
      for (Class<?> one : group.getDeclaredClasses()) {
        if (one.getSimpleName().equals(suite)) {
          return one;
        }
      }
    }
    return Class.forName("holdfast.contract." + suite);
  }

  @Override
  public void testPlanExecutionStarted(TestPlan testPlan) {
    plan = testPlan;
    for (TestIdentifier root : plan.getRoots()) {
      plan.getDescendants(root).stream().filter(TestIdentifier::isTest)
          .forEach(test -> write("planned", test, null, null));
    }
  }

  @Override
  public void executionStarted(TestIdentifier test) {
    if (test.isTest()) {
      begun.put(test.getUniqueId(), System.nanoTime());
      write("started", test, null, null);
    }
  }

  @Override
  public void executionSkipped(TestIdentifier test, String reason) {
    write("done", test, "skipped", reason);
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    boolean passed = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
    if (!test.isTest() && passed) {
      return;
    }
    // a container fails when its @BeforeAll does: then its cases did not run
    write("done", test, passed ? "passed"
            : result.getStatus() == TestExecutionResult.Status.ABORTED ? "skipped" : "failed",
        result.getThrowable().map(Runner::tell).orElse(null));
    result.getThrowable().ifPresent(thrown -> {
      System.out.println("--- " + name(test));
      thrown.printStackTrace(System.out);
    });
  }

  @Override
  public void reportingEntryPublished(TestIdentifier test, ReportEntry entry) {
    // what a suite publishes is no outcome
  }

  private static String tell(Throwable thrown) {
    // AssertJ breaks its messages into lines: the first alone says little
    String text = String.valueOf(thrown.getMessage()).lines().map(String::strip)
        .takeWhile(line -> !line.startsWith("at ")).filter(line -> !line.isEmpty())
        .collect(Collectors.joining(" "));
    return thrown.getClass().getSimpleName() + ": "
        + text.substring(0, Math.min(text.length(), 400));
  }

  /** A name that stays the same from run to run: method, and the rows it was given. */
  private String name(TestIdentifier test) {
    StringBuilder rows = new StringBuilder();
    TestIdentifier at = test;
    while (at != null && !(at.getSource().orElse(null) instanceof MethodSource)) {
      at = plan.getParent(at).orElse(null);
    }
    String method = at == null ? "(suite)"
        : ((MethodSource) at.getSource().get()).getMethodName();
    for (at = test; at != null; at = plan.getParent(at).orElse(null)) {
      String last = at.getUniqueIdObject().getLastSegment().getType();
      if (last.endsWith("invocation")) {
        rows.insert(0, "[" + at.getDisplayName() + "]");
      }
    }
    return method + rows;
  }

  private synchronized void write(String event, TestIdentifier test, String outcome,
      String message) {
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("event", event);
    line.put("id", test.getUniqueId());
    line.put("case", name(test));
    if (outcome != null) {
      line.put("outcome", outcome);
      line.put("message", message == null ? "" : message);
      Long since = begun.get(test.getUniqueId());
      line.put("seconds", since == null ? 0 : (System.nanoTime() - since) / 1_000_000 / 1000.0);
    }
    try {
      out.println(mapper.writeValueAsString(line));
      out.flush();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}
