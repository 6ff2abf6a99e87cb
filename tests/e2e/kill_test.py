"""A SIGKILL anywhere in the middle of a run, and the run still finishes with every sample stored once."""
import signal
import unittest

from fleet import FleetTest, sweep


class Kill(FleetTest):
    def run_until_first_done(self, text):
        run = self.submit(text)
        self.until(lambda: self.done(run) >= 1, 'a trial is done')
        return run

    def test_worker_killed_is_a_failed_attempt_and_the_trial_is_tried_again(self):
        _, agent = self.fleet('host1')
        run = self.run_until_first_done(sweep(duration='500ms'))
        self.kill_a_worker(agent, signal.SIGKILL)
        self.finished(run)
        self.assert_each_sample_stored_once(run, 12)
        failed = [a for a in self.attempts(run) if a['outcome'] == 'failed']
        self.assertEqual(len(failed), 1, self.attempts(run))
        self.assertIn('killed', failed[0]['reason'])

    def test_worker_that_hangs_is_a_timeout_and_the_trial_is_tried_again(self):
        _, agent = self.fleet('host1')
        run = self.run_until_first_done(sweep(duration='500ms', more='limits: { trial_timeout: 5s }\n'))
        self.kill_a_worker(agent, signal.SIGSTOP)
        self.finished(run)
        self.assert_each_sample_stored_once(run, 12)
        self.assertIn('timeout', [a['outcome'] for a in self.attempts(run)])

    def test_agent_killed_voids_the_attempt_it_ran(self):
        _, agent = self.fleet('host1')
        run = self.run_until_first_done(sweep(duration='500ms'))
        workers = self.a_worker_runs(agent)
        agent.kill()
        agent.wait()
        self.agent('host1')
        self.finished(run)
        self.assert_each_sample_stored_once(run, 12)
        ended = [a for a in self.attempts(run) if a['outcome'] != 'ok']
        self.assertEqual([a['outcome'] for a in ended], ['void'], ended)
        self.assertIn('agent_restarted', ended[0]['reason'])
        self.assertFalse([pid for pid in workers if self.is_running(pid)], 'a worker outlived its agent')

    def test_controller_killed_goes_on_where_it_was(self):
        controller, _ = self.fleet('host1')
        run = self.run_until_first_done(sweep(duration='300ms'))
        controller.kill()
        controller.wait()
        self.controller()
        self.finished(run)
        self.assert_each_sample_stored_once(run, 12)

    def test_controller_and_agent_killed_together(self):
        controller, agent = self.fleet('host1')
        run = self.run_until_first_done(sweep(duration='300ms'))
        controller.kill()
        agent.kill()
        controller.wait()
        agent.wait()
        self.controller()
        self.agent('host1')
        self.finished(run)
        self.assert_each_sample_stored_once(run, 12)

    def test_controller_gone_for_longer_than_a_trial_loses_nothing(self):
        controller, agent = self.fleet('host1')
        run = self.run_until_first_done(sweep(duration='500ms'))
        self.a_worker_runs(agent)
        controller.kill()
        controller.wait()
        self.until(lambda: not self.workers(agent), 'the trial ends without a controller')
        self.controller()
        self.finished(run)
        self.assert_each_sample_stored_once(run, 12)
        self.assertEqual({a['outcome'] for a in self.attempts(run)}, {'ok'})

    def test_two_agents_of_one_machine_finish_although_each_is_killed_once(self):
        _, *agents = self.fleet('host1', 'host2')
        run = self.run_until_first_done(sweep(duration='200ms'))
        for number, agent in enumerate(agents, 1):
            agent.kill()
            agent.wait()
            self.agent(f'host{number}')
        self.finished(run)
        self.assert_each_sample_stored_once(run, 24)

    @staticmethod
    def is_running(pid):
        try:
            with open(f'/proc/{pid}/stat') as f:
                return f.read().rsplit(')', 1)[1].split()[0] not in 'ZX'
        except OSError:
            return False


if __name__ == '__main__':
    unittest.main()
