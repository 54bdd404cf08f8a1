"""The Operations API: what Daybook knows, as JSON, inside Airflow's own web server.

Promises: nobody but a logged-in Airflow user is answered; everything is read from rows; what is changed goes through
the same functions of the engine as the DAGs and the command line. Never: no state is kept here but open connections.
"""
